"""Invented articles and the furniture of sites around them, to build pages whose truth is known."""

from __future__ import annotations

import html
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """An article as its author wrote it, in two layouts, and what is true of it."""

    title: str
    author: str
    date: str
    spaced: str
    flat: str
    sentences: tuple[str, ...]
    roles: tuple[str, ...]
    causes: tuple[str, ...]
    fixes: tuple[str, ...]
    command: str


def _fixture(name: str) -> str:
    return (FIXTURES / name).read_text(encoding="utf-8").rstrip("\n")


ZH = Article(
    title="Foobar项目多机训练中NCCL超时的排查与解决",
    author="张三丰",
    date="2024-11-03",
    spaced=_fixture("zh.spaced.txt"),
    flat=_fixture("zh.flat.txt"),
    sentences=(
        "两台机器各八张卡,训练到第三轮评估时全部进程报超时并退出",
        "WorkNCCL(SeqNum=88, OpType=ALLREDUCE",
        "验证集没有补齐,各进程的批次数不同",
        "共享存储在高峰期读取很慢",
        "采样器打开 drop_last 选项",
        "loader = DataLoader(ds, drop_last=True)",
        "拷贝后核对校验和",
        "训练脚本改读本地路径",
        "上线前用十个样本走完一次评估",
        "评估阶段的超时多半与数据划分有关",
    ),
    roles=("symptoms", "causes", "fixes", "practices", "background"),
    causes=("uneven-data", "data-loading-stall"),
    fixes=("补齐验证集", "换到本地磁盘"),
    command="loader = DataLoader(ds, drop_last=True)",
)

EN = Article(
    title="Chasing a NCCL timeout at save time in Barfoo",
    author="Jane Roe",
    date="2024-11-03",
    spaced=_fixture("en.spaced.txt"),
    flat=_fixture("en.flat.txt"),
    sentences=(
        "Eight ranks trained for two days and then hung in the first checkpoint.",
        "WorkNCCL(SeqNum=88, OpType=ALLREDUCE",
        "saving the full state dict takes 25 minutes on the shared disk",
        "the default timeout is too short for a model of this size",
        "every rank writes its own shard",
        "torch.save(shard, path)",
        "pass it to init_process_group",
        "check the value in the log",
        "Time the first save before the long run",
        "A save that works on one node can outlast the limit on eight.",
    ),
    roles=("symptoms", "causes", "fixes", "practices", "background"),
    causes=("checkpoint-io", "timeout-too-short"),
    fixes=("Sharded checkpoints", "Longer limit"),
    command="torch.save(shard, path)",
)

ARTICLES = {"zh": ZH, "en": EN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site's furniture; ``{title}``, ``{author}``, ``{date}`` are the article's."""

    header: str
    footer: str


SITES = {
    # two layouts of code-hosting blogs: cards of name, description, language, counts
    "cards": Site(
        header="首页\n/ {title}\n\n{title}\n\n{date} 12:44:14作者:{author}\n",
        footer="""
登录后查看全文
热门项目推荐
相关项目推荐

项目优选

收起
wobblewobble
A tiny kernel for toasters
C
31
12
gadgetgadget
烤面包机操作系统 | 文档与示例
Dockerfile
455
3.1 K
sprocketsprocket
暂无简介
Dart
715
172""",
    ),
    "run-together-cards": Site(
        header="{title}\n{date} 02:12:35作者:{author}",
        footer="""登录后查看全文
热门项目推荐
相关项目推荐
wobblewobble是一个面向烤面包机的操作系统内核。C046
gadget-x9gadget 是新一代烤面包机控制台——全程透明、可控。Python00
sprocket-uisprocket is a general software library for toasters.TSX0123
最新内容推荐
烤面包机固件刷写完全指南:提升早餐效率的必备资源 小麦识别数据集:目标检测的革命性应用
项目优选
收起
a kernel for toasters
C
26
10
Toaster documentation | 烤面包机文档
Dockerfile
435
3.31 K
""",
    ),
    # the same lists on a page that lost its marker lines
    "cards-without-markers": Site(
        header="{title}\n{date} 02:12:35作者:{author}",
        footer="""
wobblewobble
A tiny kernel for toasters
C
31
12
gadgetgadget
烤面包机操作系统 | 文档与示例
Dockerfile
455
3.1 K
sprocketsprocket
暂无简介
Dart
715
172
收起""",
    ),
    "blog-zh": Site(
        header="""博客
登录/注册
{title}

原创
{author} 于 {date} 09:30:00 发布
阅读量1.2w
收藏 12
点赞数 8
文章标签: 分布式 深度学习
版权声明:本文为博主原创文章,遵循 CC 4.0 BY-SA 版权协议,转载请附上原文出处链接和本声明。
""",
        footer="""
点赞
收藏
评论
分享
上一篇:如何选购烤面包机
相关推荐
烤面包机的一百种用法
早餐机器人入门
关于我们
京ICP备12345678号
公安备案号11010502030143""",
    ),
    "question-zh": Site(
        header="首页\n登录\n{title}\n发布于 {date} 08:00\n作者:{author}\n关注\n",
        footer="""
赞同 128
添加评论
分享
收藏
喜欢
推荐阅读
早餐吃什么最提神
面包的历史""",
    ),
    "blog-en": Site(
        header="""Skip to content
Sign in
Home > Blog > {title}
{title}

By {author}
Published on Nov 3, 2024
7 min read
Share
""",
        footer="""
Share this article
120 views
About the author
{author} writes about toasters.
You might also like
Ten toasters you can trust
How to fix your breakfast
Subscribe to our newsletter
© 2024 Toaster Inc. All rights reserved.
Privacy Policy
Terms of Service""",
    ),
    "forum-en": Site(
        header="{title}\n\nAuthor: {author} | {date}\n\n128 views 14 likes\n",
        footer="""
Related topics
Toaster stuck at startup
Why does my bread burn
Powered by Discourse, best viewed with JavaScript enabled""",
    ),
}


def furniture_lines(site: Site, article: Article) -> tuple[str, ...]:
    """The lines a site adds, without the title, author and date it shows of the article."""
    filled = f"{site.header}\n{site.footer}".format(
        title=article.title, author=article.author, date=article.date
    )
    own = (article.title, article.author, article.date)
    lines = (line.strip() for line in filled.splitlines())
    return tuple(
        line
        for line in lines
        if len(line) > 1
        and not line.isdigit()
        and not line.endswith(own)
        and not line.startswith(own)
    )


def text_page(site: Site, article: Article, layout: str) -> str:
    """The page as a browser saves it as text."""
    around = {"title": article.title, "author": article.author, "date": article.date}
    body = article.spaced if layout == "spaced" else article.flat
    return f"{site.header.format(**around)}\n{body}\n{site.footer.format(**around)}"


def html_body(article: Article) -> str:
    """The article as HTML: headings, lists, code."""
    out: list[str] = []
    number = 0
    for block in article.spaced.split("\n\n"):
        text = block.strip()
        first = text.split("\n")[0].strip()
        if text[:1].isdigit():
            if not number:
                out.append("<ol>")
            for line in text.split("\n"):
                number += 1
                out.append(f"<li>{html.escape(line.strip().split('. ', 1)[1])}</li>")
        elif text.startswith("•"):
            points = "".join(f"<li>{html.escape(p.strip(' •'))}</li>" for p in text.split("\n"))
            out[-1] = out[-1].removesuffix("</li>") + f"<ul>{points}</ul></li>"
        elif text == article.command:
            out[-1] = (
                out[-1].removesuffix("</li>") + f"<pre><code>{html.escape(text)}</code></pre></li>"
            )
        else:
            if number:
                out.append("</ol>")
                number = 0
            if text.startswith("["):
                out.append(f"<pre>{html.escape(text)}</pre>")
            elif len(first) < 20 and not first.endswith(("。", ".", ":", ":")):
                out.append(f"<h2>{html.escape(first)}</h2>")
            else:
                out.append(f"<p>{html.escape(text)}</p>")
    return "\n".join(out)


def html_page(article: Article) -> str:
    """A page with everything a site puts around an article."""
    return f"""<!DOCTYPE html>
<html><head><title>{article.title} - Toaster Blog</title>
<meta name="author" content="{article.author}">
<meta property="article:published_time" content="{article.date}T10:00:00+08:00">
<link rel="canonical" href="https://blog.example.org/p/17">
<style>.x {{ color: red }}</style><script>var toast = "burnt";</script></head>
<body class="has-sidebar">
<header class="site-header"><nav><ul><li><a href="/">Toaster home</a></li>
<li><a href="/a">Toaster archive</a></li></ul></nav></header>
<div class="breadcrumb"><a href="/">Toaster home</a> / <a href="/b">Toaster blog</a></div>
<div class="layout"><main><article>
<h1>{article.title}</h1>
<div class="post-meta"><span class="share-bar">Share this toast</span></div>
{html_body(article)}
</article>
<div class="recommend-box"><h3>Recommended toasters</h3><ul>
<li><a href="/1">Ten toasters you can trust</a></li><li><a href="/2">Bread for everyone</a></li>
<li><a href="/3">Why bread burns</a></li><li><a href="/4">Crumbs explained</a></li></ul></div>
<section id="comments"><p>Great toast, thanks!</p></section>
</main>
<aside><h3>Hot toasters</h3><p>Buy one today.</p></aside></div>
<div><a href="/x">Toaster one</a> <a href="/y">Toaster two</a> <a href="/z">Toaster three</a>
<a href="/w">Toaster four</a></div>
<footer><p>© 2024 Toaster Inc.</p></footer>
</body></html>"""


HTML_FURNITURE = ("oaster", "toast", "Bread for everyone", "Crumbs", "color: red", "Why bread")
